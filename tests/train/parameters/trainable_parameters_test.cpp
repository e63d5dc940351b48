#include "train/parameters/trainable_parameters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "model/base/error.h"
#include "model/files/install_paths.h"

namespace sdtune::train {
namespace {

using testing::EndsWith;
using testing::HasSubstr;

std::set<std::string> names_of(const std::vector<ModuleParameter>& parameters) {
  std::set<std::string> names;
  for (const ModuleParameter& parameter : parameters) names.insert(parameter.name);
  return names;
}

class TrainableParameters : public testing::Test {
 protected:
  std::string refusal(bool text, const std::vector<std::string>& layers) const {
    try {
      trainable_parameters(bundle_, text, layers);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return {};
  }

  const model::ModelBundle bundle_ = model::load_bundle(find_bundled_base(), torch::kFloat32, torch::kCPU);
};

TEST_F(TrainableParameters, AreThoseOfTheSelectedLayers) {
  const std::vector<ModuleParameter> queries = trainable_parameters(bundle_, true, {"to_q", "q_proj"});
  ASSERT_FALSE(queries.empty());
  std::set<std::int64_t> groups;
  for (const ModuleParameter& parameter : queries) {
    groups.insert(parameter.rate_group);
    const std::string layer = parameter.name.substr(0, parameter.name.rfind('.'));
    EXPECT_THAT(layer, testing::AnyOf(EndsWith(".to_q"), EndsWith(".q_proj")));
  }
  EXPECT_EQ(groups, (std::set<std::int64_t>{kUnetGroup, kTextGroup}));
}

TEST_F(TrainableParameters, AndTheFixedOnesAreEveryParameter) {
  const std::set<std::string> all = names_of(trainable_parameters(bundle_, true));
  for (const std::vector<std::string>& layers : {std::vector<std::string>{}, {"to_out.0", "out_proj"}}) {
    std::set<std::string> both = names_of(trainable_parameters(bundle_, true, layers));
    const std::set<std::string> fixed = names_of(fixed_parameters(bundle_, true, layers));
    EXPECT_EQ(both.size() + fixed.size(), all.size());  // none is in both
    both.insert(fixed.begin(), fixed.end());
    EXPECT_EQ(both, all);
  }
}

TEST_F(TrainableParameters, RefuseWhatSelectsNothing) {
  EXPECT_THAT(refusal(true, {"to_q", "q_proj", "to_nothing"}), HasSubstr("to_nothing"));
  EXPECT_THAT(refusal(true, {"to_q"}), HasSubstr("no layer of text_encoder"));
  EXPECT_THAT(refusal(false, {"to_q", "q_proj"}), HasSubstr("q_proj"));  // the text encoder is not trained
  EXPECT_EQ(refusal(false, {"to_q"}), "");
}

}  // namespace
}  // namespace sdtune::train
