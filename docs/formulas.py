"""Hook of mkdocs that converts blocks of ``math`` to MathML when the site is built, so that no script is needed."""

from latex2mathml.converter import convert


def on_config(config):
    """Add the formatter of ``math`` to those of the fenced blocks."""
    fences = config.mdx_configs.setdefault("pymdownx.superfences", {}).setdefault("custom_fences", [])
    fences.append({"name": "math", "class": "formula", "format": formula})
    return config


def formula(source, language, css_class, options, md, **_):
    mathml = convert(source.strip(), display="block")
    if "\\" in mathml:
        raise ValueError(f"the formula contains an unknown command: {source}")
    return f'<div class="{css_class}">{mathml}</div>'
