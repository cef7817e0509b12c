"""The codes of problems: their status, and what a person reads, in both languages. `{…}` is filled
in where one is raised."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from compute.core.texts import Text


class Spec(NamedTuple):
    status: int
    title: Text
    detail: Text


def _spec(status: int, title: tuple[str, str], detail: tuple[str, str]) -> Spec:
    return Spec(status, Text(*title), Text(*detail))


PROBLEMS: Mapping[str, Spec] = {
    "bad_request": _spec(
        400, ("Bad request", "请求有误"), ("The request can't be read.", "无法读取该请求。")
    ),
    "invalid_json": _spec(
        400, ("Not JSON", "不是 JSON"), ("The body is not valid JSON.", "请求体不是有效的 JSON。")
    ),
    "token_needed": _spec(
        401,
        ("Token needed", "需要令牌"),
        ("Open the address that the start printed.", "请打开启动时打印的地址。"),
    ),
    "not_signed_in": _spec(
        401,
        ("Not signed in", "未登录"),
        (
            "Sign in on the site, or send Authorization: Bearer with a token that is valid.",
            "请在网站上登录，或带上 Authorization: Bearer 和有效的令牌。",
        ),
    ),
    "foreign_host": _spec(
        403,
        ("Foreign host", "主机名不符"),
        (
            "Local mode answers at 127.0.0.1, localhost and [::1] with its port only.",
            "本地模式只在 127.0.0.1、localhost 和 [::1] 的本端口上应答。",
        ),
    ),
    "foreign_origin": _spec(
        403,
        ("Foreign origin", "来源不符"),
        ("This request comes from another site.", "该请求来自其他站点。"),
    ),
    "forwarded": _spec(
        403,
        ("Forwarded request", "经转发的请求"),
        (
            "Local mode refuses requests that came through a proxy. Use server mode for that.",
            "本地模式拒绝经代理转发的请求；请改用服务器模式。",
        ),
    ),
    "scope_needed": _spec(
        403,
        ("Scope needed", "权限不足"),
        (
            'This token lacks the scope "{scope}".',
            "这个令牌没有“{scope}”权限。",
        ),
    ),
    "forbidden": _spec(403, ("Forbidden", "禁止访问"), ("You may not do this.", "你无权这样做。")),
    "quota_exceeded": _spec(
        403,
        ("Quota used up", "配额已用完"),
        (
            "Your files take {used_mb} MB; the limit is {limit_mb} MB. Delete old runs or uploads.",
            "你的文件占用 {used_mb} MB，上限为 {limit_mb} MB。请删除旧的运行或上传文件。",
        ),
    ),
    "header_needed": _spec(
        403,
        ("Header needed", "缺少请求头"),
        (
            "Send the header X-Playground: 1 with an upload.",
            "上传时请带上请求头 X-Playground: 1。",
        ),
    ),
    "not_found": _spec(
        404, ("Not found", "未找到"), ("There is nothing at this address.", "此地址没有内容。")
    ),
    "job_not_found": _spec(
        404,
        ("No such job", "没有此任务"),
        ("You have no job with this id.", "你没有这个编号的任务。"),
    ),
    "artifact_not_found": _spec(
        404,
        ("No such file", "没有此文件"),
        ("The job has not made a file of this name.", "该任务没有产生这个名称的文件。"),
    ),
    "token_not_found": _spec(
        404,
        ("No such token", "没有此令牌"),
        ("You have no token with this id.", "你没有这个编号的令牌。"),
    ),
    "upload_not_found": _spec(
        404,
        ("No such upload", "没有此上传文件"),
        ("You have no uploaded file with this id.", "你没有这个编号的上传文件。"),
    ),
    "kind_not_found": _spec(
        404,
        ("No such kind", "没有此类型"),
        ('There is no kind "{kind}".', "没有名为“{kind}”的任务类型。"),
    ),
    "method_not_allowed": _spec(
        405,
        ("Method not allowed", "方法不允许"),
        ("This address does not take {method}.", "此地址不接受 {method}。"),
    ),
    "not_acceptable": _spec(
        406,
        ("Not acceptable", "无法按要求返回"),
        (
            "Ask for application/json or text/event-stream.",
            "请接受 JSON 或 text/event-stream。",
        ),
    ),
    "upload_stalled": _spec(
        408,
        ("Upload stalled", "上传中断"),
        (
            "Nothing came for {seconds} seconds, so the upload was ended. Send it again.",
            "{seconds} 秒没有收到数据，上传已中断，请重新上传。",
        ),
    ),
    "illegal_state": _spec(
        409,
        ("Wrong state", "状态不符"),
        (
            "The job is {got}; {action} has a use only while it is {expected}.",
            "任务处于 {got}；只有处于 {expected} 时才能 {action}。",
        ),
    ),
    "control_not_offered": _spec(
        409,
        ("No such control", "没有此控制"),
        ("This kind takes only: {allowed}.", "此类任务只接受：{allowed}。"),
    ),
    "not_ended": _spec(
        409,
        ("Not ended", "尚未结束"),
        ("The job is {state}. Cancel it first.", "任务处于 {state}，请先取消。"),
    ),
    "idempotency_in_progress": _spec(
        409,
        ("Still being answered", "仍在处理"),
        (
            "The first request with this Idempotency-Key is still being answered.",
            "使用这个 Idempotency-Key 的第一个请求仍在处理中。",
        ),
    ),
    "upload_in_use": _spec(
        409,
        ("In use", "正在使用"),
        (
            "Jobs that have not ended need this file: {jobs}. Cancel them or wait, then delete it.",
            "还有未结束的任务需要这个文件：{jobs}。请取消或等它们结束，再删除。",
        ),
    ),
    "too_large": _spec(413, ("Too large", "过大"), ("The body is over 1 MB.", "请求体超过 1 MB。")),
    "upload_too_large": _spec(413, ("File too large", "文件过大"), ("{why}", "{why}")),
    "not_json": _spec(
        415,
        ("JSON only", "只收 JSON"),
        (
            "Send writes with Content-Type: application/json.",
            "写入请求须带 Content-Type: application/json。",
        ),
    ),
    "not_multipart": _spec(
        415,
        ("Not multipart", "不是 multipart"),
        (
            "Send the file as multipart/form-data, in a field named file.",
            "请以 multipart/form-data 发送文件，字段名为 file。",
        ),
    ),
    "range_not_satisfiable": _spec(
        416,
        ("Range not satisfiable", "范围无效"),
        ("The file has {size} bytes.", "该文件有 {size} 字节。"),
    ),
    "invalid_request": _spec(
        422, ("Invalid request", "请求无效"), ("Some values are not valid.", "有些值无效。")
    ),
    "invalid_params": _spec(422, ("Invalid parameters", "参数无效"), ("{all}", "{all}")),
    "idempotency_mismatch": _spec(
        422,
        ("Key used before", "幂等键已用过"),
        (
            "This Idempotency-Key was used for another request. Take a new key for a new request.",
            "这个 Idempotency-Key 已用于另一个请求；新的请求请换一个新键。",
        ),
    ),
    "upload_refused": _spec(422, ("File refused", "文件不能用"), ("{why}", "{why}")),
    "unknown_kind": _spec(422, ("Unknown kind", "未知类型"), ("{all}", "{all}")),
    "too_many_requests": _spec(
        429,
        ("Too many requests", "请求过多"),
        (
            "At most {limit} of these requests a minute. Go on in {wait_s} s.",
            "这类请求每分钟最多 {limit} 次，请在 {wait_s} 秒后继续。",
        ),
    ),
    "too_many_waiting": _spec(
        429,
        ("Too many waiting", "排队过多"),
        (
            "{waiting} of your jobs wait already; {limit} may. Wait for some to start.",
            "你已有 {waiting} 个任务在排队，最多 {limit} 个。请等一些任务开始后再提交。",
        ),
    ),
    "internal": _spec(
        500,
        ("Internal error", "内部错误"),
        ("The server made a mistake; it is in the log.", "服务器出错，已记入日志。"),
    ),
    "store_unavailable": _spec(
        503,
        ("Store unavailable", "存储不可用"),
        ("A store does not answer. Try again in a moment.", "存储暂无应答，请稍后再试。"),
    ),
    "no_space": _spec(
        507,
        ("Disk full", "磁盘已满"),
        (
            "The server's disk is full. Tell whoever runs it.",
            "服务器磁盘已满，请告知管理员。",
        ),
    ),
}
