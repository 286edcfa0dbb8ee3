"""Methods side by side on the same data: runs, tables, significance, figures and cases."""
