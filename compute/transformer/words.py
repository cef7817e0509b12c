"""What the steps of a trace say: a title that states the fact, a sentence with this run's numbers,
a formula. Layers and heads count from 1, positions from 0."""

from __future__ import annotations

from typing import NamedTuple

from compute.core.texts import Text


class Words(NamedTuple):
    """Templates of one stage; `{fields}` are filled with the run's own numbers."""

    title: Text
    sentence: Text
    formula: str  # TeX


EMBED_TOKEN = Words(
    Text("Each character becomes {C} numbers", "每个字符变成 {C} 个数"),
    Text(
        "The embedding table has one row for each of {V} characters. {q} has id {id}, so it takes "
        "row {id}.",
        "嵌入表 (embedding) 里 {V} 个字符各占一行。{q}的 id 是 {id}，取第 {id} 行。",
    ),
    r"X = E_{\mathrm{ids}}",
)
POSITION_LEARNED = Words(
    Text("Each position has a vector too", "每个位置也有自己的向量"),
    Text(
        "Attention by itself can't tell order. So each position brings its own row of a trained "
        "table: {q} stands at position {i} and takes row {i}.",
        "注意力本身分不出先后，所以每个位置都从一张训练好的表里取一行：{q}在位置 {i}，取那一行。",
    ),
    r"P_t = E^{\mathrm{pos}}_t",
)
POSITION_SINUSOIDAL = Words(
    Text("Each position has a vector too", "每个位置也有自己的向量"),
    Text(
        "Attention by itself can't tell order. So each position gets the heights of sine and "
        "cosine waves, from fast to slow: at position {i} they begin with {a}, {b}.",
        "注意力本身分不出先后，所以每个位置取一组由快到慢的正弦、余弦波的高度："
        "位置 {i} 的前两个数是 {a}、{b}。",
    ),
    r"P_{t,2j} = \sin(t / 10000^{2j/C}), \quad P_{t,2j+1} = \cos(t / 10000^{2j/C})",
)
EMBED_SUM = Words(
    Text("What it is and where it stands add up", "“是什么”与“在哪里”相加"),
    Text(
        "The two vectors are added number by number. For {q} the first one is {a} + {b} = {c}.",
        "两个向量逐个数相加。{q}的第一个数是 {a} + {b} = {c}。",
    ),
    r"H = X + P",
)
NORM = Words(
    Text("Each vector is centred and scaled", "每个向量都被平移、缩放"),
    Text(
        "For {q} the {C} numbers have mean {mean} and variance {var}. Subtracting the one and "
        "dividing by the root of the other makes them 0 and 1; γ and β, both trained, then stretch "
        "and shift each column.",
        "{q}的 {C} 个数均值为 {mean}、方差为 {var}。减去均值、除以标准差后变成 0 和 1，"
        "再由训练得到的 γ、β 逐列缩放和平移。",
    ),
    r"\gamma \odot \frac{x - \mu}{\sqrt{\sigma^2 + \epsilon}} + \beta",
)
FINAL_NORM = Words(
    Text("One last normalisation before the answer", "给出答案前，最后归一化一次"),
    NORM.sentence,
    NORM.formula,
)
QKV = Words(
    Text("Each token asks, offers and carries", "每个 token 既提问，又应答，还带着内容"),
    Text(
        "Three matrices turn each vector into a query (what it looks for), a key (what it can be "
        "found by) and a value (what it passes on). Each of the {h} heads gets its own {d_k} "
        "numbers of each.",
        "三个矩阵把每个向量变成查询 (query，要找什么)、键 (key，凭什么被找到) 和"
        "值 (value，能给出什么)。{h} 个头各分到 {d_k} 个数。",
    ),
    r"\begin{array}{l} Q = X W_Q^{\top} + b_Q \\ K = X W_K^{\top} + b_K \\"
    r" V = X W_V^{\top} + b_V \end{array}",
)
SCORES = Words(
    Text("Every query meets every key", "每个查询都与每个键相遇"),
    Text(
        "A score is the dot product of one query and one key. In head {head}, the query of {q} "
        "(position {i}) and the key of {k} (position {j}) give {value}: {rank}.",
        "一个分数就是一个查询与一个键的点积。在第 {head} 个头里，{q}（位置 {i}）的查询与"
        "{k}（位置 {j}）的键得 {value}，{rank}。",
    ),
    r"S = Q K^{\top}",
)
RANK_BEST = Text("the best match among the tokens before it", "是它前面的 token 里最匹配的")
RANK_ALONE = Text("a first token can only ask itself", "第一个 token 只能问自己")
SCALE = Words(
    Text("Scores shrink by √{d_k}", "分数缩小 √{d_k} 倍"),
    Text(
        "The more numbers a dot product adds, the wider it spreads, and a softmax over wide scores "
        "leaves hardly any gradient. Divided by √{d_k} = {divisor}, {before} becomes {after}.",
        "点积加的数越多，分数就越分散，softmax 会饱和，梯度几乎消失。"
        "除以 √{d_k} = {divisor}，{before} 变成 {after}。",
    ),
    r"S' = \frac{S}{\sqrt{d_k}}",
)
MASK = Words(
    Text("The future is hidden", "遮住未来"),
    Text(
        "A token may see itself and what came before. The {hidden} scores above the diagonal, of "
        "{all}, become −∞, which softmax turns into exactly 0.",
        "每个 token 只能看自己和前面。对角线以上的 {hidden} 个分数（共 {all} 个）变成 −∞，"
        "softmax 之后恰好是 0。",
    ),
    r"S'_{ij} = -\infty \quad (j > i)",
)
SOFTMAX = Words(
    Text("Each row becomes a probability distribution", "每一行变成一个概率分布"),
    Text(
        "Each visible score is exponentiated and divided by its row's total. In head {head}, {q} "
        "(position {i}) gives {value} of its attention to {k} (position {j}). The row's entropy is "
        "{entropy}; spread evenly over {visible} tokens it would be {uniform}.",
        "每个可见的分数取指数，再除以该行的总和。在第 {head} 个头里，{q}（位置 {i}）把 {value} 的"
        "注意力给了{k}（位置 {j}）。这一行的熵是 {entropy}；若平均分给 {visible} 个 token，"
        "则是 {uniform}。",
    ),
    r"A_{ij} = \frac{e^{S'_{ij}}}{\sum_{m} e^{S'_{im}}}",
)
WEIGHTED = Words(
    Text("Values are mixed in these proportions", "按这些比例混合各个值"),
    Text(
        "In head {head}, the new vector of {q} is {mixture}. Its first number is {value}.",
        "在第 {head} 个头里，{q}的新向量是 {mixture}，它的第一个数是 {value}。",
    ),
    r"Z = A V",
)
MIXTURE_TERM = Text("{w} × the value of {k} ({j})", "{w} × {k}（{j}）的值")
CONCAT = Words(
    Text("The heads stand side by side", "把各个头并排放好"),
    Text(
        "{h} heads of {d_k} numbers each make {C} numbers for every token again.",
        "{h} 个头，每个 {d_k} 个数，拼起来每个 token 又是 {C} 个数。",
    ),
    r"Z = [Z_1, \dots, Z_h]",
)
PROJECT = Words(
    Text("One matrix lets the heads speak together", "一个矩阵让各个头的结果汇合"),
    Text(
        "Each of the {C} outputs draws on all heads. For {q} the first one is {value}.",
        "{C} 个输出各自综合了所有的头。{q}的第一个输出是 {value}。",
    ),
    r"O = Z W_O^{\top} + b_O",
)
RESIDUAL = Words(
    Text("What came in is added back", "把进来的加回去"),
    Text(
        "The layer adds to a vector instead of replacing it. For {q} the first number goes from "
        "{a} to {c}: {b} is added.",
        "这一层不替换向量，只在上面加。{q}的第一个数从 {a} 加上 {b}，变成 {c}。",
    ),
    r"H \leftarrow H + O",
)
FFN_UP = Words(
    Text("Each token is worked on alone, in {F} numbers", "每个 token 单独处理，展开成 {F} 个数"),
    Text(
        "The feed-forward layer sees one position at a time and widens its {C} numbers to {F}. For "
        "{q} they run from {low} to {high}.",
        "前馈层 (FFN) 一次只看一个位置，把 {C} 个数变成 {F} 个。{q}的这些数在 {low} 到 {high} "
        "之间。",
    ),
    r"U = X W_1^{\top} + b_1",
)
FFN_ACT = Words(
    Text("GELU lets some through and holds the rest back", "GELU 放行一些，压住其余"),
    Text(
        "A number is multiplied by the share of a normal distribution that lies below it. For {q}, "
        "{positive} of {F} are positive and mostly pass; the others end between −0.17 and 0.",
        "每个数乘以正态分布中小于它的比例。{q}的 {F} 个数里有 {positive} 个为正，大多通过，"
        "其余落在 −0.17 与 0 之间。",
    ),
    r"\mathrm{GELU}(u) = u \, \Phi(u)",
)
FFN_DOWN = Words(
    Text("Back to {C} numbers", "回到 {C} 个数"),
    Text(
        "A second matrix brings the {F} numbers back to {C}. For {q} the first is {value}.",
        "第二个矩阵把 {F} 个数变回 {C} 个。{q}的第一个数是 {value}。",
    ),
    r"Y = \mathrm{GELU}(U) \, W_2^{\top} + b_2",
)
LOGITS = Words(
    Text("Every character gets a score", "每个字符得到一个分数"),
    Text(
        "One dot product for each of the {V} characters says how well it would follow. After {q} "
        "the highest logit is {value}, for {best}.",
        "对 {V} 个字符各做一次点积，得到它有多适合接在后面。{q}之后最高的 logit 是 {value}，"
        "属于{best}。",
    ),
    r"L = H W_U^{\top} + b_U",
)
PROBABILITIES = Words(
    Text("Scores become chances", "分数变成概率"),
    Text(
        "Softmax over the vocabulary. After {q} the likeliest are {listed}; guessing evenly would "
        "give each {even}.",
        "在整个词表上做 softmax。{q}之后最可能的是 {listed}；若平均猜，每个是 {even}。",
    ),
    r"p_v = \frac{e^{L_v}}{\sum_{w} e^{L_w}}",
)
TEMPERATURE = Words(
    Text("Temperature {temperature} scales the logits", "温度 {temperature} 缩放 logits"),
    Text(
        "Each logit of the last position is divided by {temperature}: below 1 the peaks sharpen, "
        "above 1 they flatten. The highest goes from {before} to {after}.",
        "最后一个位置的每个 logit 除以 {temperature}：小于 1 更尖锐，大于 1 更平坦。"
        "最高的从 {before} 变成 {after}。",
    ),
    r"L' = \frac{L}{\tau}",
)
TEMPERATURE_ONE = Words(
    Text("Temperature 1 leaves the logits alone", "温度 1 不改变 logits"),
    Text(
        "Divided by 1, each logit of the last position stays what it is; the highest is {before}.",
        "最后一个位置的每个 logit 除以 1，保持不变；最高的是 {before}。",
    ),
    TEMPERATURE.formula,
)
TEMPERATURE_ZERO = Words(
    Text("Temperature 0 takes the likeliest", "温度 0：只取最可能的"),
    Text(
        "Nothing is divided: at temperature 0 the highest logit, {before}, always wins.",
        "不做除法：温度为 0 时，最高的 logit（{before}）总是胜出。",
    ),
    r"\tau \to 0",
)
FILTER = Words(
    Text("{kept} of {V} characters stay in the draw", "{V} 个字符里留下 {kept} 个"),
    Text(
        "{rule} What is cut gets probability 0; the rest are scaled up to sum to 1 again.",
        "{rule}被去掉的概率为 0，其余按比例放大，总和仍为 1。",
    ),
    r"p'_v = \frac{p_v}{\sum_{w \in \mathrm{kept}} p_w}",
)
RULE_NONE = Text("No filter is set, so every character stays.", "没有设置筛选，所有字符都留下。")
RULE_GREEDY = Text("Temperature 0 keeps one.", "温度 0 只留一个。")
RULE_TOP_K = Text("Top-k keeps the {top_k} likeliest.", "Top-k 留下最可能的 {top_k} 个。")
RULE_TOP_P = Text(
    "Top-p keeps the fewest whose probabilities reach {top_p}, over the whole vocabulary.",
    "Top-p 在整个词表上，留下概率之和达到 {top_p} 的最少几个。",
)
SAMPLE = Words(
    Text("The draw gives {chosen}", "抽到{chosen}"),
    Text(
        "Seed {seed} gives u = {u}. Adding up the probabilities in id order, the total first "
        "exceeds u at {chosen}, which had {p}; the likeliest was {best} with {best_p}.",
        "种子 {seed} 给出 u = {u}。按 id 顺序累加概率，首次超过 u 的是{chosen}，它的概率是 {p}；"
        "最可能的是{best}，概率 {best_p}。",
    ),
    r"\min \{ v : \sum_{w \le v} p'_w > u \}",
)
SAMPLE_GREEDY = Words(
    Text("The likeliest is {chosen}", "最可能的是{chosen}"),
    Text(
        "At temperature 0 there is no chance in it: {chosen} has the highest logit.",
        "温度为 0 时没有随机性：{chosen}的 logit 最高。",
    ),
    r"\mathrm{argmax}_v \, L_v",
)


def number(x: float) -> str:
    """Four significant digits, with a real minus sign.

    >>> number(-0.123456), number(float("-inf")), number(1234567.0)
    ('−0.1235', '−∞', '1.235e+06')
    """
    if x in (float("inf"), float("-inf")):
        return "∞" if x > 0 else "−∞"
    return f"{x:.4g}".replace("-", "−") if x else "0"
