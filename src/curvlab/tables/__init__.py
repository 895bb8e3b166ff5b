"""Tables and figures of the papers: the published numbers next to the reproduced ones."""

from curvlab.tables.report import Report, build_report
from curvlab.tables.spec import TableSpec, load_table, load_tables, table_names

__all__ = ["Report", "TableSpec", "build_report", "load_table", "load_tables", "table_names"]
