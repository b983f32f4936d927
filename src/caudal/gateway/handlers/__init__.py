"""What the gateway answers, one function per request."""
