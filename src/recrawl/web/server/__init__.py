"""What ``recrawl serve`` puts together: answers and orders of the dashboard, servers of time travel, how they run."""
