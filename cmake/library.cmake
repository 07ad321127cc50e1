# libjzx and libjzx_testkit.
find_package(Threads REQUIRED)
find_package(PkgConfig)

file(GLOB JZX_SOURCES CONFIGURE_DEPENDS core/src/*.c core/src/*/*.c core/src/os/debug/*.c)
jzx_product(core LIBRARY jzx SOURCES ${JZX_SOURCES} OPTIONS -fno-semantic-interposition)

file(GLOB JZX_TESTKIT_SOURCES CONFIGURE_DEPENDS testkit/src/*.c)
jzx_product(testkit ON jzx SOURCES ${JZX_TESTKIT_SOURCES})
