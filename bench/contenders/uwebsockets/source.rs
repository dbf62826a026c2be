//! Empty: the package exists for its dependency's C++ sources (see `build`).
