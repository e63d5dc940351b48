// What reads the images of an identity evaluation (identity_evaluator.h): the classifier of rendered people, or a face
// recognition network for any others.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace sdtune::train {

// What an evaluation generates.
struct IdentityImage {
  std::string prompt;
  std::uint64_t seed = 0;
  std::optional<std::size_t> asked;  // which of identity_prompts(); unset for an image of the class
  std::string class_words;           // "a person": what the subject is one of
};

struct IdentityReading {
  torch::Tensor embedding;  // [B, D] float32, of length 1, a row of zeros where no face is seen
  torch::Tensor asked;      // [B] float64: how many things the prompt asks that can be read back,
  torch::Tensor shown;      // [B] float64: and how many of them are
};

class IdentityReader {
 public:
  virtual ~IdentityReader() = default;

  virtual std::string name() const = 0;  // for errors
  // The photos of a subject, each [3, H, W] in [-1, 1] -> [R, D]; photos without a face are left out. Throws DataError
  // where none is left.
  virtual torch::Tensor embed(const std::vector<torch::Tensor>& photos) = 0;
  // What photos show besides the subject, each [3, H, W] in [-1, 1], as words behind a prompt: "wearing a red hoodie,
  // on a beach"; empty where the reader cannot say.
  virtual std::vector<std::string> describe(const std::vector<torch::Tensor>& photos) {
    return std::vector<std::string>(photos.size());
  }
  // Other people of that class, [n, D]; empty where the reader was asked to stop. Throws DataError where it sees none.
  virtual torch::Tensor others(const std::string& class_prompt) = 0;
  // images [B, 3, H, W] in [-1, 1], as `asked` lists them.
  virtual IdentityReading read(const torch::Tensor& images, const std::vector<IdentityImage>& asked) = 0;
  // The likeness that 1 % of other people reach; unset where it is not known.
  virtual std::optional<double> threshold() const = 0;
  // The same for one image against one other.
  virtual std::optional<double> pair_threshold() const { return std::nullopt; }
};

}  // namespace sdtune::train
