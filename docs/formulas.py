"""For the site: blocks of ``math`` become MathML when it is built, so that no script has to draw them."""

from latex2mathml.converter import convert


def on_config(config):
    """A hook of mkdocs: the formatter joins those of the fenced blocks."""
    fences = config.mdx_configs.setdefault("pymdownx.superfences", {}).setdefault("custom_fences", [])
    fences.append({"name": "math", "class": "formula", "format": formula})
    return config


def formula(source, language, css_class, options, md, **_):
    mathml = convert(source.strip(), display="block")
    if "\\" in mathml:
        raise ValueError(f"a command in this formula is not known: {source}")
    return f'<div class="{css_class}">{mathml}</div>'
