package files
