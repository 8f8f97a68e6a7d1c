"""Quality of archives and of estimates: blur, coherence, freshness, age, missed changes, and scores of predictions."""
