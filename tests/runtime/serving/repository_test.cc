// repository_test.cc: a folder of models that changes while it is watched.

#include "runtime/serving/repository/repository.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "tests/runtime/base/eventually.h"

namespace serin::serving {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;
using serin::test::eventually;

class RepositoryTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(testing::TempDir()) / ("repository_" + std::to_string(::getpid()));
    fs::create_directories(folder_);
  }
  void TearDown() override {
    repository_.reset();
    fs::remove_all(folder_);
  }
  void put(const std::string& version, const std::string& source = "1") {
    const fs::path aside = folder_.string() + ".incoming";
    fs::create_directories(aside);
    fs::copy_file(fs::path(SERIN_MODELS) / "digits" / source / "model.onnx", aside / "model.onnx", fs::copy_options::overwrite_existing);
    fs::create_directories(folder_ / "digits");
    fs::rename(aside, folder_ / "digits" / version);
  }
  void open() {
    auto opened = Repository::open({.roots = {{folder_}}, .poll = 20ms}, host_, schedulers_);
    ASSERT_TRUE(opened) << opened.error().message;
    repository_ = std::move(*opened);
    repository_->load();
  }
  const VersionEntry* find(uint64_t version) {
    catalogue_ = repository_->catalogue().get();
    const auto model = catalogue_->models.find("digits");
    if (model == catalogue_->models.end()) return nullptr;
    const auto entry = model->second.versions.find(version);
    return entry == model->second.versions.end() ? nullptr : &entry->second;
  }

  fs::path folder_;
  std::unique_ptr<kernels::Backend> backend_ = kernels::make_cpu_backend({.onednn_path = "none"});
  metrics::Registry metrics_;
  Host host_{.backend = *backend_, .metrics = metrics_, .boot = 1, .pool = ComputePool(1)};
  const SchedulerFactory schedulers_{host_};
  std::unique_ptr<Repository> repository_;
  std::shared_ptr<const Catalogue> catalogue_;
};

TEST_F(RepositoryTest, LoadsWhatIsThereBeforeItWatches) {
  put("1");
  put("12", "3");
  open();
  ASSERT_NE(find(12), nullptr);
  EXPECT_EQ(find(12)->state, VersionState::kReady);
  EXPECT_EQ(catalogue_->models.at("digits").latest()->version(), "12");
}

TEST_F(RepositoryTest, P17_FoldersThatAreNoVersionsAreLeftOut) {
  put("1");
  for (const char* name : {"01", "-1", "latest", "1.0", "99999999999999999999999"}) fs::create_directories(folder_ / "digits" / name);
  open();
  ASSERT_NE(find(1), nullptr);
  EXPECT_EQ(catalogue_->models.at("digits").versions.size(), 1u);
}

TEST_F(RepositoryTest, VersionsComeAndGo) {
  put("1");
  open();
  put("2", "3");
  EXPECT_TRUE(eventually([&] { return find(2) && find(2)->version; }));
  const auto held = find(2)->version;
  fs::remove_all(folder_ / "digits/2");
  EXPECT_TRUE(eventually([&] { return find(2) == nullptr; }));
  EXPECT_EQ(held->version(), "2");  // whoever still answers with it may
  fs::remove_all(folder_ / "digits");
  EXPECT_TRUE(eventually([&] { return find(1) == nullptr; }));
  EXPECT_TRUE(catalogue_->models.empty());
}

TEST_F(RepositoryTest, ABrokenFileIsFailedAndABrokenReplacementLeavesTheOldOneServing) {
  put("1");
  fs::create_directories(folder_ / "digits/2");
  std::ofstream(folder_ / "digits/2/model.onnx") << "<html>";
  open();
  EXPECT_EQ(find(2)->state, VersionState::kFailed);
  EXPECT_NE(find(2)->reason.find("HTML"), std::string::npos);
  EXPECT_EQ(find(2)->reason.find(folder_.string()), std::string::npos) << "clients need not know where the repository lies";
  std::ofstream(folder_ / "digits/1/model.onnx", std::ios::trunc) << "rubbish";
  EXPECT_TRUE(eventually([&] { return !find(1)->reason.empty(); }));
  EXPECT_TRUE(find(1)->version);
  EXPECT_EQ(find(1)->state, VersionState::kReady);
}

TEST_F(RepositoryTest, AFolderThatIsGoneForAMomentUnloadsNothing) {
  put("1");
  open();
  const auto before = find(1)->version;
  const fs::path away = folder_.string() + ".away";
  fs::rename(folder_, away);
  std::this_thread::sleep_for(100ms);  // five looks: that nothing happens cannot be awaited
  fs::rename(away, folder_);
  put("2");
  EXPECT_TRUE(eventually([&] { return find(2) && find(2)->version; }));
  EXPECT_EQ(find(1)->version, before);
}

TEST_F(RepositoryTest, WhatIsNoFolderIsRefused) {
  EXPECT_EQ(Repository::open({.roots = {{"/nowhere"}}}, host_, schedulers_).error().code, Code::kNotFound);
  EXPECT_EQ(Repository::open({.roots = {{"/dev/null"}}}, host_, schedulers_).error().code, Code::kInvalidArgument);
}

}  // namespace
}  // namespace serin::serving
