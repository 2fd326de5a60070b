// cuSOLVER's handles. CuPy's compiled modules make them; what is solved, `libraries.py` solves.
LIBRARY cusolverDnCreate(void** handle) { return *handle = new int, 0; }
LIBRARY cusolverDnDestroy(void* handle) { return delete static_cast<int*>(handle), 0; }
LIBRARY cusolverDnSetStream(void*, void*) { return 0; }
LIBRARY cusolverGetProperty(int which, int* value) { return *value = which == 0 ? 12 : 0, 0; }
