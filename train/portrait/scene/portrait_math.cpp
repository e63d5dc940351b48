#include "train/portrait/scene/portrait_math.h"

namespace sdtune::train::portrait {

Rotation Rotation::from_turns(float yaw, float pitch, float roll) {
  const float cy = cosine_of_turns(yaw), sy = sine_of_turns(yaw);
  const float cp = cosine_of_turns(pitch), sp = sine_of_turns(pitch);
  const float cr = cosine_of_turns(roll), sr = sine_of_turns(roll);
  Rotation turn;
  turn.row0 = {cr * cy + sr * sp * sy, sr * cp, -cr * sy + sr * sp * cy};
  turn.row1 = {-sr * cy + cr * sp * sy, cr * cp, sr * sy + cr * sp * cy};
  turn.row2 = {cp * sy, -sp, cp * cy};
  return turn;
}

}  // namespace sdtune::train::portrait
