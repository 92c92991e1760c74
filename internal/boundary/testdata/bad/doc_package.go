package bad
