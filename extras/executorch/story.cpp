// A story from a language model, through ExecuTorch's Module: the prompt in one call, then a token
// a call; the KV cache stays on the GPU.  usage: story MODEL.pte N ID...
#include <executorch/extension/module/module.h>
#include <executorch/extension/tensor/tensor.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

using executorch::extension::from_blob;
using executorch::extension::Module;

int main(int argc, char **argv) {
  if (argc < 4) return std::fprintf(stderr, "usage: story MODEL.pte N ID...\n"), 2;
  Module module(argv[1]);
  std::vector<int64_t> ids;
  for (int i = 3; i < argc; i++) ids.push_back(std::atoll(argv[i]));
  int64_t position = 0;
  for (int left = std::atoi(argv[2]); left > 0; left--) {
    auto tokens = from_blob(ids.data(), {1, static_cast<int>(ids.size())},
                            executorch::aten::ScalarType::Long);
    auto start = from_blob(&position, {1}, executorch::aten::ScalarType::Long);
    const auto outputs = module.forward({tokens, start});
    if (!outputs.ok())
      return std::fprintf(stderr, "story: error %d\n", static_cast<int>(outputs.error())), 1;
    const auto logits = outputs->at(0).toTensor(); // (1, vocabulary): of the last token
    const float *row = logits.const_data_ptr<float>();
    position += static_cast<int64_t>(ids.size());
    ids = {std::max_element(row, row + logits.numel()) - row};
    std::printf("%lld ", static_cast<long long>(ids[0]));
  }
  std::puts("");
}
