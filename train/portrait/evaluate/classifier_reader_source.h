// The portrait classifier as the reader of identity evaluation, for whoever starts a run.
#pragma once

#include "train/identity/portrait_reader_source.h"

namespace sdtune::train::evaluate {

// The classifier that identity_classifier names, else the installed one.
const PortraitReaderSource& classifier_reader_source();

}  // namespace sdtune::train::evaluate
