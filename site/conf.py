"""Configure Sphinx. `make site` runs tools/site/build.py, which prepares the sources and runs Sphinx."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tools.lessons import notebooks

name, revision = notebooks.repository()
printed = "printed" in globals().get("tags", ())

project = "One Program, Many Devices"
author = f"The contributors to {name}"
copyright = "the contributors; text and figures CC BY 4.0, code MIT"
extensions = ["myst_nb", "sphinx_copybutton", "tools.lessons.mathml", "tools.site.terms", "tools.site.page_metadata"]
root_doc = "index"
language = "en"
templates_path = [] if printed else ["_templates"]
exclude_patterns = []

nb_execution_mode = "off"  # the pages show the committed outputs
nb_ipywidgets_js = {}  # lessons use no widgets, whose scripts would be loaded from another site
nb_code_prompt_show = "Show the code"
nb_code_prompt_hide = "Hide the code"
myst_enable_extensions = ["attrs_block", "attrs_inline", "dollarmath"]
html_math_renderer = "mathml"  # from tools/lessons/mathml.py; MathJax would be loaded from another site
myst_heading_anchors = 3
myst_links_external_new_tab = False
copybutton_selector = "div.cell_input div.highlight pre, details.answer div.highlight pre"

pygments_style = "tango"
html_title = project
html_baseurl = "https://{}.github.io/{}/".format(*name.split("/"))
html_static_path = ["_static"]
html_extra_path = ["../.github/layouts.png"]  # the image that link previews show
html_favicon = "_static/favicon.svg"
html_css_files = ["print.css"] if printed else ["course.css"]
html_js_files = [] if printed else ["page_behavior.js", "guess_verdict.js", "hidden_answers.js", "search.js"]
html_theme = "basic" if printed else "sphinx_book_theme"
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False
html_use_index = False
if printed:
    html_sidebars = {"**": []}
else:
    html_context = {"default_mode": "auto"}  # follow the reader's system setting
    html_theme_options = {
        "repository_url": f"https://github.com/{name}",
        "repository_branch": revision,
        "use_repository_button": True,
        "use_download_button": False,
        "use_issues_button": True,
        "navbar_persistent": "",
        "logo": {"image_light": "_static/logo.svg", "image_dark": "_static/logo.svg", "text": project, "alt_text": ""},
        "show_toc_level": 2,
        "pygments_light_style": "a11y-high-contrast-light",
        "pygments_dark_style": "a11y-high-contrast-dark",
        "footer_content_items": "copyright.html",
    }
