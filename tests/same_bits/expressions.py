"""Expressions of an input file, read by Python's own parser and evaluated as docs/model.md says, with the functions of the
C library."""
import ast
import math
import operator

COMPARISONS = {ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge}
OPERATORS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv}
FUNCTIONS = {"sin": math.sin, "cos": math.cos, "tan": math.tan, "exp": math.exp, "log": math.log, "sqrt": math.sqrt,
             "abs": abs, "tanh": math.tanh, "floor": lambda a: float(math.floor(a)),
             "min": lambda a, b: b if b < a else a, "max": lambda a, b: b if a < b else a}


class Expression:
    def __init__(self, text, dimensions):
        self.tree, self.d = ast.parse(text.strip().replace("^", "**"), mode="eval").body, dimensions

    def __call__(self, x, t):
        """At the coordinates x, dimension 0 first."""
        names = {"t": t, "pi": math.pi}
        for j in range(self.d):
            names["x%d" % j] = names["xyzw"[self.d - 1 - j]] = x[j]
        return self.value(self.tree, names)

    def value(self, node, names):
        of = lambda n: self.value(n, names)
        if isinstance(node, ast.Constant):
            return float(node.value)
        if isinstance(node, ast.Name):
            return names[node.id]
        if isinstance(node, ast.UnaryOp):
            return -of(node.operand) if isinstance(node.op, ast.USub) else of(node.operand)
        if isinstance(node, ast.Compare):
            return 1.0 if COMPARISONS[type(node.ops[0])](of(node.left), of(node.comparators[0])) else 0.0
        if isinstance(node, ast.Call):
            return FUNCTIONS[node.func.id](*map(of, node.args))
        if isinstance(node.op, ast.Pow):
            return self.power(of(node.left), node.right, of)
        return OPERATORS[type(node.op)](of(node.left), of(node.right))

    def power(self, a, right, of):
        b = of(right)
        if not isinstance(right, ast.Constant) or b != int(b) or b > 64:
            return math.pow(a, b)
        product = a if b else 1.0
        for _ in range(int(b) - 1):
            product = product * a
        return product
