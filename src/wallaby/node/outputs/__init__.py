"""What a node does with outputs and states besides handing them on: store them durably, send them untracked, let go."""
