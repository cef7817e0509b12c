"""REST: tokens. A token's secret is in the answer that made it, and nowhere else."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils import timezone
from ninja import Router, Schema
from pydantic import AwareDatetime, ConfigDict, Field

from compute.core.errors import Problem
from compute.core.texts import Text
from playground.accounts import tokens
from playground.accounts.models import Token
from playground.accounts.owner import Actor, current_actor
from playground.accounts.scopes import ADMIN, ALL, READ, widened
from playground.problems import ApiProblem

router = Router(tags=["tokens"])
BAD_SCOPES = Text(
    "Give one or more of read, submit, admin.", "请给出 read、submit、admin 中的一个或多个。"
)
BEYOND = Text("Your own token does not reach so far.", "你所用的令牌没有这么大的权限。")
TWO_ENDS = Text(
    "Give expires_in_days or expires_at, not both.",
    "expires_in_days 和 expires_at 只能给出一个。",
)
BAD_END = Text(
    f"Give a moment from now on, at most {tokens.MAX_DAYS} days ahead.",
    f"请给出将来的时刻，最多 {tokens.MAX_DAYS} 天之后。",
)
NO_NAME = Text("Give the token a name.", "请给令牌起个名字。")
TOO_MANY = Text(
    f"You have {tokens.MAX_TOKENS} tokens already. Revoke one first.",
    f"你已有 {tokens.MAX_TOKENS} 个令牌，请先撤销一个。",
)


class TokenIn(Schema):
    model_config = ConfigDict(extra="forbid")

    name: str = Field(max_length=80, examples=["my notebook"])
    scopes: list[str] = Field(["read", "submit"], max_length=3)
    expires_in_days: int | None = Field(90, ge=1, le=tokens.MAX_DAYS)
    expires_at: AwareDatetime | None = None


@router.post("tokens", summary="Make a token; its secret is shown this once")
def create_token(request: HttpRequest, payload: TokenIn) -> HttpResponse:
    """201 with `token`. By a token itself this takes the scope `admin`."""
    actor = current_actor(request, scope=ADMIN)
    problems = problems_of(actor, payload.name, payload.scopes)
    expires_at = _expiry_of(payload, problems)
    if problems:
        raise ApiProblem("invalid_request", errors=problems)
    token, secret = tokens.make(
        owner_id=actor.user_id,
        name=payload.name.strip(),
        scopes=payload.scopes,
        expires_at=expires_at,
    )
    answer = JsonResponse({**as_json(token), "token": secret}, status=201)
    answer["Cache-Control"] = "no-store"
    return answer


@router.get("tokens", summary="Your tokens, without their secrets")
def list_tokens(request: HttpRequest) -> HttpResponse:
    actor = current_actor(request, scope=READ)
    items = [as_json(token) for token in tokens.of(actor.user_id)]
    return JsonResponse({"items": items, "next": None, "prev": None})


@router.delete("tokens/{int:token_id}", summary="Revoke a token")
def revoke_token(request: HttpRequest, token_id: int) -> HttpResponse:
    """204; what came with it is closed within five seconds. A token may revoke itself."""
    actor = current_actor(request)
    if token_id != actor.token_id:
        actor.need(ADMIN)
    if token_id > 2**63 - 1 or not tokens.revoke(owner_id=actor.user_id, token_id=token_id):
        raise ApiProblem("token_not_found")
    return HttpResponse(status=204)


def problems_of(actor: Actor, name: str, scopes: list[str]) -> list[Problem]:
    """What is wrong with the token that `actor` asks for."""
    found = []
    if not name.strip():
        found.append(Problem("/name", NO_NAME))
    if not scopes or not set(scopes) <= ALL:
        found.append(Problem("/scopes", BAD_SCOPES))
    elif not widened(scopes) <= actor.scopes:
        found.append(Problem("/scopes", BEYOND))
    if tokens.of(actor.user_id).count() >= tokens.MAX_TOKENS:
        found.append(Problem("", TOO_MANY))
    return found


def _expiry_of(payload: TokenIn, problems: list[Problem]) -> datetime | None:
    """When the token ends, None for never. What is wrong with the wish goes to `problems`."""
    moment = payload.expires_at
    if moment is None:
        return expiry(payload.expires_in_days)
    if "expires_in_days" in payload.model_fields_set:
        problems.append(Problem("/expires_at", TWO_ENDS))
    elif not timezone.now() < moment < timezone.now() + timedelta(days=tokens.MAX_DAYS):
        problems.append(Problem("/expires_at", BAD_END))
    return moment


def expiry(days: int | None) -> datetime | None:
    return timezone.now() + timedelta(days=days) if days else None


def as_json(token: Token) -> dict[str, Any]:
    return {
        "id": token.pk,
        "name": token.name,
        "prefix": token.prefix,
        "scopes": token.scopes,
        "created_at": _rfc3339(token.created_at),
        "expires_at": _rfc3339(token.expires_at),
        "used_at": _rfc3339(token.used_at),
    }


def _rfc3339(moment: datetime | None) -> str | None:
    return moment.isoformat().replace("+00:00", "Z") if moment else None
