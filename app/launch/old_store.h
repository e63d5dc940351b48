// Several machines: the ranks' meeting place of the attempt before.
#pragma once

#include "app/launch/launch_options.h"
#include "app/launch/signal_reader.h"

namespace sdtune::app {

// Waits until the address takes no connection, at most ten seconds: a rank that is started again while rank 0 of the
// attempt before still listens would join that one, find its number taken, end that attempt and need another restart.
// The end of the ten seconds tells nothing: rank 0 may have been restarted already, and listens anew. Returns the
// signal that asked for a stop meanwhile, 0 for none.
int wait_for_old_store(const Rendezvous& place, SignalReader& signals);

}  // namespace sdtune::app
