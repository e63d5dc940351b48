// One version of a loop for each width of vector registers; the loader picks by what the processor has. By levels of
// x86-64: "arch=haswell" would be taken on a processor of that very name alone, and on every other one none of them.
#pragma once

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
#define SDTUNE_VECTOR_CLONES __attribute__((target_clones("default", "arch=x86-64-v3", "arch=x86-64-v4")))
#else
#define SDTUNE_VECTOR_CLONES
#endif
