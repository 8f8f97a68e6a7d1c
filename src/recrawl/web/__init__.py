"""Reports, the dashboard and the replay server: this package shows the results of other packages."""
