# Flags that every target gets. What depends on a preset arrives through the JZX_ options.
if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
    set(CMAKE_BUILD_TYPE RelWithDebInfo)
endif()

set(CMAKE_C_STANDARD 17)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)

# The last two exist in C only; the C++ example gets the others.
set(JZX_C_FLAGS -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wundef -Wvla
    $<$<COMPILE_LANGUAGE:C>:-Wstrict-prototypes> $<$<COMPILE_LANGUAGE:C>:-Wmissing-prototypes>)
if(JZX_WERROR)
    list(APPEND JZX_C_FLAGS -Werror)
endif()
# Switches are always defined, as 0 or 1: `#if` with -Wundef then catches a misspelled one.
add_compile_definitions(JZI_DEBUG=$<BOOL:${JZX_DEBUG}> JZI_STRESS=$<BOOL:${JZX_STRESS}>)

if(JZX_SANITIZE)
    list(APPEND JZX_C_FLAGS -fsanitize=${JZX_SANITIZE} -fno-sanitize-recover=all
         -fno-omit-frame-pointer)
    add_link_options(-fsanitize=${JZX_SANITIZE})
endif()
if(JZX_FUZZ)
    list(APPEND JZX_C_FLAGS -fsanitize=fuzzer-no-link)
endif()
if(JZX_COVERAGE)
    list(APPEND JZX_C_FLAGS --coverage -fprofile-update=atomic)
    add_link_options(--coverage)
endif()
add_compile_options(${JZX_C_FLAGS})
