"""Pictures and reports. This room draws what others computed."""
