"""HTTP: transfers, DNS, IP limits, address policy."""
