def write_application(folder, files):
    raise NotImplementedError
