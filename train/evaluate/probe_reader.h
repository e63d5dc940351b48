// Who reads the pictures of a look at likeness (identity_probe.h): the judge of rendered people, or a face recognition
// network for any others.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace sdtune::train::evaluate {

// What a look draws.
struct ProbePicture {
  std::string prompt;
  std::uint64_t seed = 0;
  std::optional<std::size_t> asked;  // which of probe_prompts(); unset for a picture of the class
  std::string class_words;           // "a person": what the subject is one of
};

struct ProbeReading {
  torch::Tensor embedding;  // [B, D] float32, of length 1, a row of zeros where no face is seen
  torch::Tensor asked;      // [B] float64: how many things the prompt asks that can be read back,
  torch::Tensor shown;      // [B] float64: and how many of them are
};

class ProbeReader {
 public:
  virtual ~ProbeReader() = default;

  virtual std::string name() const = 0;  // for errors
  // The photos of a subject, each [3, H, W] in [-1, 1] -> [R, D]; photos without a face are left out. Throws DataError
  // where none is left.
  virtual torch::Tensor embed(const std::vector<torch::Tensor>& photos) = 0;
  // Other people of that class, [n, D]; empty where the reader was asked to stop. Throws DataError where it sees none.
  virtual torch::Tensor others(const std::string& class_prompt) = 0;
  // drawn [B, 3, H, W] in [-1, 1], of these pictures in their order.
  virtual ProbeReading read(const torch::Tensor& drawn, const std::vector<ProbePicture>& pictures) = 0;
  // The likeness that 1 % of other people reach; unset where nobody has measured it.
  virtual std::optional<double> threshold() const = 0;
};

}  // namespace sdtune::train::evaluate
