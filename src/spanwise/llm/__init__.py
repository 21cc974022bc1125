"""Language models: one client for any OpenAI-compatible server, its cache, a server of our own."""
