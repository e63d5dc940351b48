// sdtune.CLIPTokenizer.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <pybind11/stl/filesystem.h>
#include <torch/types.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <variant>
#include <vector>

#include "model/files/file_system.h"
#include "model/tokenizer/byte_pair_learner.h"
#include "model/tokenizer/clip_tokenizer.h"
#include "python/src/array_caster.h"
#include "python/src/module.h"

namespace py = pybind11;

namespace sdtune::python {

namespace {

using Text = std::variant<std::string, std::vector<std::string>>;

std::vector<std::string> as_list(const Text& text) {
  if (const auto* one = std::get_if<std::string>(&text)) return {*one};
  return std::get<std::vector<std::string>>(text);
}

torch::Tensor framed_ids(const ClipTokenizer& tokenizer, const Text& text) {
  const std::vector<std::string> texts = as_list(text);
  torch::Tensor ids = torch::empty({std::ssize(texts), tokenizer.model_max_length()}, torch::kInt64);
  for (std::size_t i = 0; i < texts.size(); ++i) {
    ids[static_cast<std::int64_t>(i)] = torch::tensor(tokenizer(texts[i]).ids, torch::kInt64);
  }
  return ids;
}

void save_tokenizer(const ClipTokenizer& tokenizer, const std::filesystem::path& folder) {
  tokenizer.save(real_file_system(), folder);
}

}  // namespace

void register_tokenizer(py::module_& module) {
  using Unlocked = py::call_guard<py::gil_scoped_release>;
  py::class_<ClipTokenizer>(module, "CLIPTokenizer",
                            "Text to token ids, equal to transformers' CLIPTokenizer. Text is str, or bytes in UTF-8.")
      .def_static("from_pretrained", &ClipTokenizer::from_folder, py::arg("folder"), Unlocked(),
                  "Reads a tokenizer folder: vocab.json and merges.txt, or tokenizer.json. Raises WeightError.")
      .def_static("learn", &learn_tokenizer, py::arg("texts"), py::arg("vocab_size"), py::arg("model_max_length") = 77,
                  Unlocked(),
                  "Learns a vocabulary of at most vocab_size ids from texts by byte-pair encoding. Raises ConfigError.")
      .def("__call__", &framed_ids, py::arg("text"), Unlocked(),
           "Ids of one text or a list of B texts, framed by start and end and padded or cut: int64 [B, "
           "model_max_length]. Raises DataError for text that is not UTF-8.")
      .def(
          "encode", [](const ClipTokenizer& self, const std::string& text) { return self.encode(text); },
          py::arg("text"), Unlocked(), "Ids of the text alone, a list, without start, end, padding or cut.")
      .def(
          "truncated", [](const ClipTokenizer& self, const std::string& text) { return self(text).truncated; },
          py::arg("text"), Unlocked(), "How many ids of the text do not fit into model_max_length.")
      .def("save_pretrained", &save_tokenizer, py::arg("folder"), Unlocked(),
           "Writes vocab.json, merges.txt, tokenizer_config.json and special_tokens_map.json. Raises StorageError.")
      .def_property_readonly("vocab_size", &ClipTokenizer::vocab_size, "All ids are below this.")
      .def_property_readonly("model_max_length", &ClipTokenizer::model_max_length, "Ids in a framed text, 77 for CLIP.")
      .def_property_readonly("bos_token_id", &ClipTokenizer::bos_token_id)
      .def_property_readonly("eos_token_id", &ClipTokenizer::eos_token_id)
      .def_property_readonly("pad_token_id", &ClipTokenizer::pad_token_id);
}

}  // namespace sdtune::python
