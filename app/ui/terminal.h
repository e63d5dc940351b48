// What is known of the terminal behind stderr or stdout.
#pragma once

#include <cstdio>

namespace sdtune::app {

// Whether a person reads along: a terminal that can go back to the beginning of a line.
bool is_terminal(std::FILE* stream);

// COLUMNS, else the terminal's own width, else 100.
int terminal_columns(std::FILE* stream);

// False while the terminal does not take more (stopped by Ctrl-S, a stalled connection): skip the image of progress
// rather than stop training.
bool takes_output(std::FILE* stream);

}  // namespace sdtune::app
