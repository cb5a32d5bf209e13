import { describe, expect, test } from "@jest/globals";
import { commandWords, newAgent } from "./agent.ts";

const template = { id: "id", name: "Coder", description: "", takesSettings: false };

describe("the command of an agent", () => {
  test.each([
    ["plain words", "coder --loop  -q ", ["coder", "--loop", "-q"]],
    ["a JSON list", '["sh", "-c", "coder < plan | tee log"]', ["sh", "-c", "coder < plan | tee log"]],
    ["a JSON list with an empty argument", ' ["coder", ""]', ["coder", ""]],
  ])("is %s", (_, text, words) => {
    expect(commandWords(text)).toEqual(words);
  });

  test.each([
    ["coder 'two words'", "without a shell"],
    ["coder $HOME", "without a shell"],
    ["coder | tee log", "without a shell"],
    ["", "must name a program"],
    ["   ", "must name a program"],
    ["[]", "must name a program"],
    ['[""]', "must name a program"],
    ['["coder"', "begins like a JSON list"],
    ['["coder", 1]', "each a string"],
    ['["co\\u0000der"]', "zero character"],
  ])("is refused as %j", (text, message) => {
    expect(() => commandWords(text)).toThrow(message);
  });

  test("has at most 64 words of at most 4,096 characters", () => {
    const words = (count: number) => JSON.stringify(Array(count).fill("x"));
    expect(commandWords(words(64))).toHaveLength(64);
    expect(() => commandWords(words(65))).toThrow("more than 64 words");
    expect(commandWords(JSON.stringify(["x".repeat(4_096)]))).toHaveLength(1);
    expect(() => commandWords(JSON.stringify(["x".repeat(4_097)]))).toThrow("more than 4096 characters");
  });
});

describe("the name of an agent", () => {
  test("has 1 to 80 characters, of which none is invisible", () => {
    expect(newAgent({ ...template, name: "x".repeat(80) }).name).toHaveLength(80);
    expect(() => newAgent({ ...template, name: "x".repeat(81) })).toThrow("more than 80 characters");
    for (const name of ["", " Coder", "Coder ", "Co\tder", "Co\u0085der"]) {
      expect(() => newAgent({ ...template, name })).toThrow("the name must not be empty");
    }
  });

  test("comes with a description of at most 500 characters", () => {
    expect(newAgent({ ...template, description: "x".repeat(500) }).description).toHaveLength(500);
    expect(() => newAgent({ ...template, description: "x".repeat(501) })).toThrow("more than 500");
  });
});
