"""Input and output of tables: files of many formats are read; rankings and smaller tables are written."""

from .conversion import convert_table
from .reading import read_pairs, read_table
from .table import Table, TableError
from .writing import require_ranking_path, require_table_path, write_ranking, write_table

__all__ = [
    "Table",
    "TableError",
    "convert_table",
    "read_pairs",
    "read_table",
    "require_ranking_path",
    "require_table_path",
    "write_ranking",
    "write_table",
]
