import c from "shiki/langs/c.mjs";

/**
 * C++ embedded in other languages, such as Ruby. It uses the grammar of C, since that of C++ has 530 kB and takes
 * seconds to prepare.
 */
export default [
  ...c,
  { name: "cpp", scopeName: "source.cpp", patterns: [{ include: "source.c" }], repository: {} },
];
