project = "Course"
extensions = ["myst_parser"]
html_static_path = ["_static"]
# README
