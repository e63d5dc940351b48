// A process that was forked after its parent had computed cannot compute.
#pragma once

namespace sdtune::python {

// Called before anything computes. Throws std::runtime_error (RuntimeError in Python) in a process that was forked from
// one in which this was called before: it has the parent's thread pool and none of its threads, and would wait for them
// without end (GCC's libgomp, bug 58378). Where one thread computes there is no pool.
void require_unforked_process();

}  // namespace sdtune::python
