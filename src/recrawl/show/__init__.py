"""Tables and pictures, reports, the dashboard and travel in time: this room shows what others computed."""
