"""A small Kubernetes cluster for tests: an API server, and a kubelet that starts a process for each pod."""
