"""The loops that join decisions, store, broker and engine: worker, gateway, reconciler, janitor."""
