"""What a training script needs around an executor; each part is a module of its own and loads when it is
asked for."""
