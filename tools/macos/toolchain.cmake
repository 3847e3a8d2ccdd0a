# macOS on any system: Zig's C compiler, which brings stubs of Apple's libraries. It links; nothing is signed with a
# certificate, and nothing here can run it.
set(CMAKE_SYSTEM_NAME Darwin)
set(SCONCE_MACOS_ARCH "arm64" CACHE STRING "arm64 or x86_64")
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES SCONCE_MACOS_ARCH)
set(CMAKE_SYSTEM_PROCESSOR ${SCONCE_MACOS_ARCH})
set(ZIG "${CMAKE_CURRENT_LIST_DIR}/../../build/deps/ziglang/ziglang/zig")
string(REPLACE "arm64" "aarch64" ZIG_ARCH "${SCONCE_MACOS_ARCH}")
set(CMAKE_C_COMPILER "${ZIG}" cc -target ${ZIG_ARCH}-macos.11.0)
set(CMAKE_AR "${CMAKE_CURRENT_LIST_DIR}/ar" CACHE FILEPATH "")
set(CMAKE_RANLIB "${CMAKE_CURRENT_LIST_DIR}/ranlib" CACHE FILEPATH "")
set(CMAKE_OSX_SYSROOT "" CACHE STRING "")
