"""What ``recrawl experiment`` repeats of the papers: one file an experiment, beside it those that write it down."""
