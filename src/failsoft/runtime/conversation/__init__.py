"""Conversations (threads) while the program runs: what each may retry, and what is kept of it in the store."""
