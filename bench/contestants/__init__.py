"""Who takes part. Each module has `answer(app, folder)`, which gives all answers of `app`."""
