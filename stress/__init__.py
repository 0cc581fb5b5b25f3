"""Long, seeded assaults on fits, files and processes; short versions of them are in the tests."""
