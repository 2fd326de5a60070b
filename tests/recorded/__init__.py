"""What MXNet and MindSpore answered, and the programs that asked them."""
