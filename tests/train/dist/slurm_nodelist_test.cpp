#include "train/dist/slurm_nodelist.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/base/error.h"

namespace sdtune::train {
namespace {

// A thousand short texts of the signs that matter: an error or a name, and never another exception.
std::string text_of(std::uint32_t number) {
  constexpr std::string_view kSigns = "[]-,019an.";
  std::string text;
  for (; number > 0; number /= kSigns.size()) text += kSigns[number % kSigns.size()];
  return text;
}

TEST(FirstHost, ReadsSlurmsForms) {
  // From SLURM's manual of scontrol show hostlist.
  for (const auto& [list, host] :
       std::vector<std::pair<std::string, std::string>>{{"node1", "node1"},
                                                        {"node1,node2", "node1"},
                                                        {"node[01-04,7]", "node01"},
                                                        {"node[7,01-04],login1", "node7"},
                                                        {"rack[2-3]-node[001-128]", "rack2-node001"},
                                                        {"n[5].cluster.org", "n5.cluster.org"},
                                                        {"gpu-a_1", "gpu-a_1"},
                                                        {"10.0.0.[1-4]", "10.0.0.1"}}) {
    EXPECT_EQ(first_host(list, "LIST"), host) << list;
  }
}

TEST(FirstHost, RefusesWhatIsNoList) {
  for (const std::string& list : std::vector<std::string>{"",
                                                          ",node1",
                                                          "node[",
                                                          "node[1-",
                                                          "node[]",
                                                          "node[a]",
                                                          "node[1-]",
                                                          "node[-1]",
                                                          "node[1,]",
                                                          "node[1--2]",
                                                          "node]1",
                                                          "node[[1]]",
                                                          "no de",
                                                          "node\n1",
                                                          "node;rm",
                                                          "$(host)",
                                                          std::string("no\0de", 5),
                                                          "-oProxy",
                                                          std::string(300, 'a'),
                                                          std::string(70000, 'a'),
                                                          "n[" + std::string(300, '1') + "]"}) {
    try {
      first_host(list, "SLURM_JOB_NODELIST");
      ADD_FAILURE() << list.substr(0, 40);
    } catch (const ConfigError& error) {
      EXPECT_EQ(error.problems().front().where, "SLURM_JOB_NODELIST");
      EXPECT_LT(error.problems().front().line().size(), 400u);
    }
  }
}

TEST(FirstHost, GivesAHostNameOrAnErrorForAnyText) {
  for (std::uint32_t number = 0; number < 200000; ++number) {
    const std::string text = text_of(number);
    try {
      const std::string host = first_host(text, "LIST");
      EXPECT_FALSE(host.empty());
      EXPECT_EQ(host.find_first_of("[],"), std::string::npos) << text;
      EXPECT_NE(host.front(), '-');
    } catch (const ConfigError&) {
    }
  }
}

TEST(TasksOnNode, CountsRepetitions) {
  EXPECT_EQ(tasks_on_node("4", 0), 4);
  EXPECT_EQ(tasks_on_node("2(x3),1", 0), 2);
  EXPECT_EQ(tasks_on_node("2(x3),1", 2), 2);
  EXPECT_EQ(tasks_on_node("2(x3),1", 3), 1);
  EXPECT_EQ(tasks_on_node("2(x3),1", 4), 0);
  for (const char* wrong : {"", "x", "2(x", "2(x)", "2(x3", "-1", "2;3", "99999999999999999999"}) {
    EXPECT_EQ(tasks_on_node(wrong, 1), 0) << wrong;
  }
}

}  // namespace
}  // namespace sdtune::train
