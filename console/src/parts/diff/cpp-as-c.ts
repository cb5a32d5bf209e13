import c from "shiki/langs/c.mjs";

/** C++ within other languages, such as Ruby: the rules of C, since its own are 530 kB and take seconds to prepare. */
export default [
  ...c,
  { name: "cpp", scopeName: "source.cpp", patterns: [{ include: "source.c" }], repository: {} },
];
