// What ExecuTorch itself makes of a program's data files: prints its error when the method is
// loaded, 0 for none.  usage: data_files MODEL.pte DATA.ptd...
#include <executorch/extension/module/module.h>

#include <cstdio>
#include <string>
#include <vector>

int main(int argc, char **argv) {
  if (argc < 2) return std::fprintf(stderr, "usage: data_files MODEL.pte DATA.ptd...\n"), 2;
  executorch::extension::Module module(argv[1], std::vector<std::string>(argv + 2, argv + argc));
  std::printf("%d\n", static_cast<int>(module.load_forward()));
}
