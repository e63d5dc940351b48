// An indexed list of children of one type, named "<list>.0", "<list>.1", ... as in diffusers' files.
#pragma once

#include <torch/nn/module.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace sdtune::model {

template <class Holder>
class ModuleList {
 public:
  // Registers an empty list called `name` at `parent`; without children it adds no parameter names.
  ModuleList(torch::nn::Module& parent, const std::string& name)
      : list_(parent.register_module(name, std::make_shared<torch::nn::Module>(name))) {}

  void push_back(Holder module) {
    modules_.push_back(list_->register_module(std::to_string(modules_.size()), std::move(module)));
  }

  bool empty() const { return modules_.empty(); }
  int64_t size() const { return static_cast<int64_t>(modules_.size()); }
  Holder& operator[](int64_t index) { return modules_.at(static_cast<size_t>(index)); }
  auto begin() { return modules_.begin(); }
  auto end() { return modules_.end(); }

 private:
  std::shared_ptr<torch::nn::Module> list_;
  std::vector<Holder> modules_;
};

}  // namespace sdtune::model
