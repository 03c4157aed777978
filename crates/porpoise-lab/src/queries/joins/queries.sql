-- Families of queries: the same joins, with other conditions in each variant. They count, so that
-- answers differ if a row is missing, and take the least of some columns, so that these are read.

-- query 1
-- variant a: ct.kind = 'production companies'; k.keyword = 'sequel'
-- variant b: ct.kind = 'distributors'; k.keyword LIKE 'murder%'
-- variant c: ct.kind = 'special effects companies'; k.keyword IN ('alien', 'magic', 'fight')
SELECT count(*), min(t.title), min(t.production_year)
FROM company_type ct, movie_company mc, title t, movie_keyword mk, keyword k
WHERE ct.id = mc.company_type_id AND mc.movie_id = t.id AND mk.movie_id = t.id
  AND mk.keyword_id = k.id AND mc.movie_id = mk.movie_id AND {1} AND {2};

-- query 2
-- variant a: cy.code = 'de'; k.keyword = 'detective'
-- variant b: cy.code = 'us'; k.keyword = 'detective'
-- variant c: cy.code IN ('se', 'dk', 'fi', 'is'); k.keyword LIKE 'king%'
-- variant d: cy.name = 'Japan'; k.keyword = 'talking-animal'
SELECT count(*), min(t.title)
FROM company cn, country cy, keyword k, movie_company mc, movie_keyword mk, title t
WHERE cn.country_id = cy.id AND cn.id = mc.company_id AND mc.movie_id = t.id
  AND t.id = mk.movie_id AND mk.keyword_id = k.id AND mc.movie_id = mk.movie_id AND {1} AND {2};

-- query 3
-- variant a: mi.info = 'Germany'; t.production_year > 2005
-- variant b: mi.info IN ('Sweden', 'Denmark', 'Finland', 'Iceland'); t.production_year > 1990
-- variant c: mi.info = 'USA'; t.production_year < 1940
SELECT count(*), min(t.title)
FROM keyword k, movie_info mi, movie_keyword mk, title t
WHERE k.keyword LIKE '%sequel%' AND t.id = mi.movie_id AND t.id = mk.movie_id
  AND mk.movie_id = mi.movie_id AND k.id = mk.keyword_id AND {1} AND {2};

-- query 4
-- variant a: mr.rating > 7.5; t.production_year > 2005
-- variant b: mr.rating > 9.0; t.production_year > 2010
-- variant c: mr.votes > 5000; t.production_year BETWEEN 1950 AND 1980
SELECT count(*), min(mr.rating), max(mr.votes), min(t.title)
FROM keyword k, movie_rating mr, movie_keyword mk, title t
WHERE k.keyword LIKE 'blood%' AND t.id = mr.movie_id AND t.id = mk.movie_id
  AND mk.movie_id = mr.movie_id AND k.id = mk.keyword_id AND {1} AND {2};

-- query 5
-- variant a: mc.note LIKE '%(theatrical)%' AND mc.note LIKE '%(France)%'; mi.info IN ('French', 'German', 'English')
-- variant b: mc.note LIKE '%(VHS)%' AND mc.note LIKE '%(USA)%'; mi.info IN ('USA', 'UK')
-- variant c: mc.note NOT LIKE '%(TV)%' AND mc.note LIKE '%(USA)%'; mi.info IN ('Drama', 'Horror', 'Western')
SELECT count(*), min(t.title)
FROM company_type ct, info_type it, movie_company mc, movie_info mi, title t
WHERE ct.kind = 'distributors' AND t.production_year > 1975 AND t.id = mi.movie_id
  AND t.id = mc.movie_id AND mc.movie_id = mi.movie_id AND ct.id = mc.company_type_id
  AND it.id = mi.info_type_id AND {1} AND {2};

-- query 6
-- variant a: k.keyword = 'fight-3'; n.name LIKE '%Downey%'; t.production_year > 2010
-- variant b: k.keyword IN ('fight', 'magic', 'journey', 'alien'); n.name LIKE '%Downey%'; t.production_year > 2014
-- variant c: k.keyword = 'fight'; n.name LIKE '%Downey%'; t.production_year > 2014
-- variant d: k.keyword IN ('fight', 'magic', 'journey', 'alien'); n.gender = 'f'; t.production_year > 2000
SELECT count(*), min(n.name), min(t.title)
FROM cast_info ci, keyword k, movie_keyword mk, person n, title t
WHERE k.id = mk.keyword_id AND t.id = mk.movie_id AND t.id = ci.movie_id
  AND ci.movie_id = mk.movie_id AND n.id = ci.person_id AND {1} AND {2} AND {3};

-- query 7
-- variant a: n.name LIKE 'B%' AND n.gender = 'm'; t.production_year BETWEEN 1980 AND 1995; lt.link = 'features'
-- variant b: n.gender = 'f' AND n.name LIKE '%Bella%'; t.production_year BETWEEN 1980 AND 1984; lt.link = 'features'
-- variant c: n.gender IN ('m', 'f'); t.production_year BETWEEN 1980 AND 2010; lt.link IN ('references', 'referenced in', 'features')
SELECT count(*), min(n.name), min(pi.info)
FROM aka_name an, cast_info ci, info_type it, link_type lt, movie_link ml, person n,
     person_info pi, title t
WHERE it.info = 'mini biography' AND pi.info LIKE 'Volker%' AND n.id = an.person_id
  AND n.id = pi.person_id AND ci.person_id = n.id AND t.id = ci.movie_id
  AND ml.linked_movie_id = t.id AND lt.id = ml.link_type_id AND it.id = pi.info_type_id
  AND pi.person_id = an.person_id AND pi.person_id = ci.person_id
  AND an.person_id = ci.person_id AND ci.movie_id = ml.linked_movie_id AND {1} AND {2} AND {3};

-- query 8
-- variant a: cy.code = 'jp' AND ci.note = '(voice)'; rt.role = 'actress'
-- variant b: cy.code = 'jp' AND ci.note = '(voice)' AND t.production_year BETWEEN 2006 AND 2010; rt.role = 'actress'
-- variant c: cy.code = 'us'; rt.role = 'writer'
-- variant d: cy.code = 'us'; rt.role = 'costume designer'
SELECT count(*), min(an.name), min(t.title)
FROM aka_name an, cast_info ci, company cn, country cy, movie_company mc, person n, role_type rt,
     title t
WHERE an.person_id = n.id AND n.id = ci.person_id AND ci.movie_id = t.id AND t.id = mc.movie_id
  AND mc.company_id = cn.id AND cn.country_id = cy.id AND ci.role_id = rt.id
  AND an.person_id = ci.person_id AND ci.movie_id = mc.movie_id AND {1} AND {2};

-- query 9
-- variant a: n.gender = 'f' AND n.name LIKE '%An%'; mc.note LIKE '%(USA)%'; t.production_year BETWEEN 2005 AND 2015
-- variant b: n.gender = 'f' AND n.name LIKE '%Angelina%'; mc.note LIKE '%(200%)%'; t.production_year BETWEEN 2007 AND 2010
-- variant c: n.gender = 'f' AND n.name LIKE '%An%'; mc.id > 0; t.id > 0
SELECT count(*), min(an.name), min(rn.name), min(t.title)
FROM aka_name an, role_name rn, cast_info ci, company cn, country cy, movie_company mc, person n,
     role_type rt, title t
WHERE ci.note = '(voice)' AND cy.code = 'us' AND rt.role = 'actress' AND ci.movie_id = t.id
  AND t.id = mc.movie_id AND ci.movie_id = mc.movie_id AND mc.company_id = cn.id
  AND cn.country_id = cy.id AND ci.role_id = rt.id AND n.id = ci.person_id
  AND rn.id = ci.role_name_id AND an.person_id = n.id AND an.person_id = ci.person_id
  AND {1} AND {2} AND {3};

-- query 10
-- variant a: cy.code = 'dk'; ci.note LIKE '%(voice)%' AND ci.note NOT LIKE '%(uncredited)%'; t.production_year > 2005
-- variant b: cy.code = 'pl'; rt.role = 'actor'; t.production_year > 2010
-- variant c: cy.code = 'us'; ci.note LIKE '%(producer)%'; t.production_year > 1990
SELECT count(*), min(t.title)
FROM cast_info ci, company cn, country cy, company_type ct, movie_company mc, role_type rt, title t
WHERE t.id = mc.movie_id AND t.id = ci.movie_id AND ci.movie_id = mc.movie_id
  AND rt.id = ci.role_id AND cn.id = mc.company_id AND cn.country_id = cy.id
  AND ct.id = mc.company_type_id AND {1} AND {2} AND {3};

-- query 11
-- variant a: cn.name LIKE '%Film%'; lt.link LIKE '%follow%'; t.production_year BETWEEN 1950 AND 2000
-- variant b: cn.name LIKE 'Lion%'; lt.link LIKE '%follows%'; t.production_year = 1998
-- variant c: cn.name LIKE 'Warner%'; lt.link = 'references'; t.production_year > 1950
-- variant d: cn.country_id > 1; lt.link LIKE 're%'; t.production_year > 1950
SELECT count(*), min(cn.name), min(lt.link), min(t.title)
FROM company cn, company_type ct, keyword k, link_type lt, movie_company mc, movie_keyword mk,
     movie_link ml, title t
WHERE ct.kind = 'production companies' AND k.keyword = 'sequel' AND lt.id = ml.link_type_id
  AND ml.movie_id = t.id AND t.id = mk.movie_id AND mk.keyword_id = k.id AND t.id = mc.movie_id
  AND mc.company_type_id = ct.id AND mc.company_id = cn.id AND ml.movie_id = mk.movie_id
  AND ml.movie_id = mc.movie_id AND mk.movie_id = mc.movie_id AND {1} AND {2} AND {3};

-- query 12
-- variant a: mi.info IN ('Drama', 'Horror'); mr.rating > 8.0; t.production_year BETWEEN 2005 AND 2008
-- variant b: mi.info IN ('Comedy', 'Western'); mr.votes > 100; t.production_year > 2000
-- variant c: mi.info IN ('Drama', 'Horror', 'Western', 'Documentary'); mr.rating > 7.0; t.production_year BETWEEN 2000 AND 2010
SELECT count(*), min(cn.name), min(mr.rating), min(t.title)
FROM company cn, country cy, company_type ct, info_type it, movie_company mc, movie_info mi,
     movie_rating mr, title t
WHERE cy.code = 'us' AND ct.kind = 'production companies' AND it.info = 'genres'
  AND t.id = mi.movie_id AND t.id = mr.movie_id AND mi.info_type_id = it.id
  AND t.id = mc.movie_id AND ct.id = mc.company_type_id AND cn.id = mc.company_id
  AND cn.country_id = cy.id AND mc.movie_id = mi.movie_id AND mc.movie_id = mr.movie_id
  AND mi.movie_id = mr.movie_id AND {1} AND {2} AND {3};

-- query 13
-- variant a: cy.code = 'de'; kt.kind = 'movie'; t.id > 0
-- variant b: cy.code = 'us'; kt.kind = 'movie'; t.title LIKE '%Champion%'
-- variant c: cy.code = 'us'; kt.kind = 'video game'; t.title LIKE 'The%'
-- variant d: cy.code = 'us'; kt.kind = 'movie'; t.id > 0
SELECT count(*), min(mi.info), min(mr.rating), min(t.title)
FROM company cn, country cy, company_type ct, info_type it, kind_type kt, movie_company mc,
     movie_info mi, movie_rating mr, title t
WHERE ct.kind = 'production companies' AND it.info = 'release dates' AND mi.movie_id = t.id
  AND it.id = mi.info_type_id AND kt.id = t.kind_id AND mc.movie_id = t.id
  AND cn.id = mc.company_id AND cn.country_id = cy.id AND ct.id = mc.company_type_id
  AND mr.movie_id = t.id AND mi.movie_id = mr.movie_id AND mi.movie_id = mc.movie_id
  AND mr.movie_id = mc.movie_id AND {1} AND {2} AND {3};

-- query 14
-- variant a: k.keyword IN ('murder', 'blood', 'police', 'detective'); mi.info IN ('Sweden', 'Germany', 'USA', 'Japan'); mr.rating < 8.5 AND t.production_year > 2010
-- variant b: k.keyword IN ('murder', 'murder-1'); mi.info IN ('Sweden', 'Germany', 'USA', 'UK'); mr.rating > 6.0 AND t.title LIKE '%Murder%'
-- variant c: k.keyword LIKE 'murder%'; mi.info <> 'USA'; mr.rating < 8.5 AND t.production_year > 2005
SELECT count(*), min(mr.rating), min(t.title)
FROM info_type it, keyword k, kind_type kt, movie_info mi, movie_rating mr, movie_keyword mk,
     title t
WHERE it.info = 'countries' AND kt.kind IN ('movie', 'episode') AND kt.id = t.kind_id
  AND t.id = mi.movie_id AND t.id = mk.movie_id AND t.id = mr.movie_id
  AND mk.movie_id = mi.movie_id AND mk.movie_id = mr.movie_id AND mi.movie_id = mr.movie_id
  AND k.id = mk.keyword_id AND it.id = mi.info_type_id AND {1} AND {2} AND {3};

-- query 15
-- variant a: mc.note LIKE '%(200%)%'; mi.info LIKE 'USA:% 200%'; t.production_year > 2000
-- variant b: cn.name LIKE 'Universal%'; mi.info LIKE 'USA:% 199%'; t.production_year BETWEEN 1990 AND 2000
-- variant c: mc.id > 0; mi.info LIKE 'USA:% 19%'; t.production_year > 1990
SELECT count(*), min(at.title), min(mi.info), min(t.title)
FROM aka_title at, company cn, country cy, company_type ct, info_type it, keyword k,
     movie_company mc, movie_info mi, movie_keyword mk, title t
WHERE cy.code = 'us' AND it.info = 'release dates' AND t.id = at.movie_id AND t.id = mi.movie_id
  AND t.id = mk.movie_id AND t.id = mc.movie_id AND mk.movie_id = mi.movie_id
  AND mk.movie_id = mc.movie_id AND mk.movie_id = at.movie_id AND mi.movie_id = mc.movie_id
  AND mi.movie_id = at.movie_id AND mc.movie_id = at.movie_id AND k.id = mk.keyword_id
  AND it.id = mi.info_type_id AND cn.id = mc.company_id AND cn.country_id = cy.id
  AND ct.id = mc.company_type_id AND {1} AND {2} AND {3};

-- query 16
-- variant a: t.season BETWEEN 5 AND 9; k.keyword = 'journey'
-- variant b: t.id > 0; k.keyword = 'journey'
-- variant c: t.season < 3; k.keyword LIKE 'magic%'
SELECT count(*), min(an.name), min(t.title)
FROM aka_name an, cast_info ci, company cn, country cy, keyword k, movie_company mc,
     movie_keyword mk, person n, title t
WHERE cy.code = 'us' AND an.person_id = n.id AND n.id = ci.person_id AND ci.movie_id = t.id
  AND t.id = mk.movie_id AND mk.keyword_id = k.id AND t.id = mc.movie_id
  AND mc.company_id = cn.id AND cn.country_id = cy.id AND an.person_id = ci.person_id
  AND ci.movie_id = mc.movie_id AND ci.movie_id = mk.movie_id AND mc.movie_id = mk.movie_id
  AND {1} AND {2};

-- query 17
-- variant a: cy.code = 'us'; n.name LIKE 'B%'
-- variant b: cy.id > 0; n.name LIKE 'Z%' OR n.name LIKE 'Y%'
-- variant c: cy.id > 0; n.name LIKE '%Bert%'
-- variant d: cy.code = 'is'; n.name LIKE 'B%'
SELECT count(*), min(n.name)
FROM cast_info ci, company cn, country cy, keyword k, movie_company mc, movie_keyword mk, person n,
     title t
WHERE k.keyword = 'king' AND n.id = ci.person_id AND ci.movie_id = t.id AND t.id = mk.movie_id
  AND mk.keyword_id = k.id AND t.id = mc.movie_id AND mc.company_id = cn.id
  AND cn.country_id = cy.id AND ci.movie_id = mc.movie_id AND ci.movie_id = mk.movie_id
  AND mc.movie_id = mk.movie_id AND {1} AND ({2});

-- query 18
-- variant a: n.gender = 'm' AND n.name LIKE '%Tim%'; it.info = 'budget'; mr.votes > 10
-- variant b: n.gender = 'f'; it.info = 'genres' AND mi.info IN ('Horror', 'Thriller'); mr.rating > 8.0
-- variant c: n.gender = 'm'; it.info = 'genres' AND mi.info IN ('Horror', 'Action', 'War'); mr.votes > 10
SELECT count(*), min(mi.info), min(mr.votes), min(t.title)
FROM cast_info ci, info_type it, movie_info mi, movie_rating mr, person n, title t
WHERE ci.note IN ('(producer)', '(executive producer)', '(written by)', '(screenplay)')
  AND t.id = mi.movie_id AND t.id = mr.movie_id AND t.id = ci.movie_id
  AND ci.movie_id = mi.movie_id AND ci.movie_id = mr.movie_id AND mi.movie_id = mr.movie_id
  AND n.id = ci.person_id AND it.id = mi.info_type_id AND {1} AND {2} AND {3};

-- query 19
-- variant a: n.name LIKE '%An%'; mi.info LIKE 'Japan:%200%' OR mi.info LIKE 'USA:%200%'; t.production_year BETWEEN 2005 AND 2009
-- variant b: n.name LIKE '%Angel%'; mi.info LIKE 'Japan:%2007%' OR mi.info LIKE 'USA:%2008%'; t.production_year BETWEEN 2007 AND 2008
-- variant c: n.id > 0; mi.info LIKE 'Japan:%'; t.production_year > 2000
SELECT count(*), min(n.name), min(t.title)
FROM aka_name an, role_name rn, cast_info ci, company cn, country cy, info_type it,
     movie_company mc, movie_info mi, person n, role_type rt, title t
WHERE ci.note = '(voice)' AND cy.code = 'us' AND it.info = 'release dates' AND n.gender = 'f'
  AND rt.role = 'actress' AND t.id = mi.movie_id AND t.id = mc.movie_id AND t.id = ci.movie_id
  AND mc.movie_id = ci.movie_id AND mc.movie_id = mi.movie_id AND mi.movie_id = ci.movie_id
  AND cn.id = mc.company_id AND cn.country_id = cy.id AND it.id = mi.info_type_id
  AND n.id = ci.person_id AND rt.id = ci.role_id AND n.id = an.person_id
  AND ci.person_id = an.person_id AND rn.id = ci.role_name_id AND {1} AND ({2}) AND {3};

-- query 20
-- variant a: cct.kind = 'cast' AND ccs.kind LIKE '%complete%'; k.keyword IN ('magic', 'fight', 'journey'); t.production_year > 1950
-- variant b: cct.kind = 'crew' AND ccs.kind = 'complete'; k.keyword IN ('magic', 'fight', 'journey', 'alien'); t.production_year > 2000
-- variant c: cct.kind = 'cast' AND ccs.kind LIKE '%verified'; k.keyword LIKE 'love-1%'; t.production_year > 2005
SELECT count(*), min(n.name), min(t.title)
FROM complete_cast cc, completion_type cct, completion_type ccs, role_name rn, cast_info ci,
     keyword k, kind_type kt, movie_keyword mk, person n, title t
WHERE kt.kind = 'movie' AND kt.id = t.kind_id AND t.id = mk.movie_id AND t.id = ci.movie_id
  AND t.id = cc.movie_id AND mk.movie_id = ci.movie_id AND mk.movie_id = cc.movie_id
  AND ci.movie_id = cc.movie_id AND rn.id = ci.role_name_id AND n.id = ci.person_id
  AND k.id = mk.keyword_id AND cct.id = cc.subject_id AND ccs.id = cc.status_id
  AND {1} AND {2} AND {3};

-- query 21
-- variant a: cn.country_id <> 17; mi.info IN ('Sweden', 'Germany', 'Denmark'); t.production_year BETWEEN 1950 AND 2000
-- variant b: cn.country_id = 5; mi.info = 'Germany'; t.production_year BETWEEN 2000 AND 2010
-- variant c: cn.name LIKE '%Film%'; mi.info IN ('USA', 'UK', 'Germany'); t.production_year BETWEEN 1950 AND 2010
SELECT count(*), min(cn.name), min(lt.link), min(t.title)
FROM company cn, company_type ct, keyword k, link_type lt, movie_company mc, movie_info mi,
     movie_keyword mk, movie_link ml, title t
WHERE ct.kind = 'production companies' AND k.keyword = 'sequel' AND lt.link LIKE '%follow%'
  AND lt.id = ml.link_type_id AND ml.movie_id = t.id AND t.id = mk.movie_id
  AND mk.keyword_id = k.id AND t.id = mc.movie_id AND mc.company_type_id = ct.id
  AND mc.company_id = cn.id AND mi.movie_id = t.id AND ml.movie_id = mk.movie_id
  AND ml.movie_id = mc.movie_id AND mk.movie_id = mc.movie_id AND ml.movie_id = mi.movie_id
  AND mk.movie_id = mi.movie_id AND mc.movie_id = mi.movie_id AND {1} AND {2} AND {3};

-- query 22
-- variant a: mi.info IN ('Germany', 'USA'); k.keyword IN ('murder', 'blood', 'police'); mr.rating < 7.0
-- variant b: mi.info IN ('Germany', 'USA'); k.keyword IN ('murder', 'blood', 'police'); mr.rating < 7.0 AND t.production_year > 2009
-- variant c: mi.info <> 'USA'; k.keyword LIKE 'blood%'; mr.rating < 8.5 AND mc.note NOT LIKE '%(USA)%'
-- variant d: mi.info IN ('Sweden', 'Norway', 'Germany', 'Denmark', 'USA'); k.keyword LIKE 'police-%'; mr.rating < 8.5
SELECT count(*), min(cn.name), min(mr.rating), min(t.title)
FROM company cn, company_type ct, info_type it, keyword k, kind_type kt, movie_company mc,
     movie_info mi, movie_rating mr, movie_keyword mk, title t
WHERE it.info = 'countries' AND kt.kind IN ('movie', 'episode') AND kt.id = t.kind_id
  AND t.id = mi.movie_id AND t.id = mk.movie_id AND t.id = mr.movie_id AND t.id = mc.movie_id
  AND mk.movie_id = mi.movie_id AND mk.movie_id = mr.movie_id AND mk.movie_id = mc.movie_id
  AND mi.movie_id = mr.movie_id AND mi.movie_id = mc.movie_id AND mc.movie_id = mr.movie_id
  AND k.id = mk.keyword_id AND it.id = mi.info_type_id AND ct.id = mc.company_type_id
  AND cn.id = mc.company_id AND {1} AND {2} AND {3};

-- query 23
-- variant a: s.title LIKE 'The %'; n.gender = 'f'
-- variant b: s.production_year > 2010; n.name LIKE 'K%'
-- variant c: s.title = 'The Night'; n.gender = 'm'
SELECT count(*), count(DISTINCT n.id), min(e.title)
FROM title s, title e, cast_info ci, person n, kind_type kt
WHERE e.episode_of_id = s.id AND s.kind_id = kt.id AND kt.kind = 'tv series'
  AND ci.movie_id = e.id AND ci.person_id = n.id AND {1} AND {2};

-- query 24
-- variant a: cy.code = 'us'; rt.role = 'actress' AND ci.note = '(voice)'; k.keyword IN ('magic', 'fight', 'talking-animal')
-- variant b: cy.code = 'jp'; rt.role = 'actor' AND ci.note = '(voice)'; k.keyword LIKE 'talking-animal%'
SELECT count(*), min(rn.name), min(n.name), min(t.title)
FROM aka_name an, role_name rn, cast_info ci, company cn, country cy, info_type it, keyword k,
     movie_company mc, movie_info mi, movie_keyword mk, person n, role_type rt, title t
WHERE it.info = 'release dates' AND t.production_year > 2005 AND t.id = mi.movie_id
  AND t.id = mc.movie_id AND t.id = ci.movie_id AND t.id = mk.movie_id
  AND mc.movie_id = ci.movie_id AND mc.movie_id = mi.movie_id AND mc.movie_id = mk.movie_id
  AND mi.movie_id = ci.movie_id AND mi.movie_id = mk.movie_id AND ci.movie_id = mk.movie_id
  AND cn.id = mc.company_id AND cn.country_id = cy.id AND it.id = mi.info_type_id
  AND n.id = ci.person_id AND rt.id = ci.role_id AND n.id = an.person_id
  AND ci.person_id = an.person_id AND rn.id = ci.role_name_id AND k.id = mk.keyword_id
  AND {1} AND {2} AND {3};

-- query 25
-- variant a: n.gender = 'm'; k.keyword IN ('murder', 'blood', 'fight', 'police', 'detective'); mi.info = 'Horror'
-- variant b: n.gender = 'm'; k.keyword IN ('murder', 'blood', 'fight'); mi.info = 'Horror' AND t.title LIKE '%Freddy%'
-- variant c: n.gender = 'f'; k.keyword LIKE 'blood-%'; mi.info IN ('Horror', 'Action', 'Crime', 'War')
SELECT count(*), min(mi.info), min(mr.votes), min(n.name), min(t.title)
FROM cast_info ci, info_type it, keyword k, movie_info mi, movie_rating mr, movie_keyword mk,
     person n, title t
WHERE ci.note IN ('(written by)', '(screenplay)', '(novel)') AND it.info = 'genres'
  AND t.id = mi.movie_id AND t.id = mr.movie_id AND t.id = ci.movie_id AND t.id = mk.movie_id
  AND ci.movie_id = mi.movie_id AND ci.movie_id = mr.movie_id AND ci.movie_id = mk.movie_id
  AND mi.movie_id = mr.movie_id AND mi.movie_id = mk.movie_id AND mr.movie_id = mk.movie_id
  AND n.id = ci.person_id AND it.id = mi.info_type_id AND k.id = mk.keyword_id
  AND {1} AND {2} AND {3};

-- query 26
-- variant a: lt.link IN ('follows', 'followed by', 'remake of'); kt1.kind = 'movie'; r2.rating < 6.0
-- variant b: lt.link LIKE '%follow%'; kt1.kind = 'tv series'; r2.rating < 8.0
-- variant c: lt.link = 'references'; kt1.kind IN ('movie', 'tv mini series'); r2.votes > 1000
SELECT count(*), min(c1.name), min(c2.name), min(r1.rating), min(r2.rating), min(t1.title)
FROM company c1, company c2, kind_type kt1, kind_type kt2, link_type lt, movie_company mc1,
     movie_company mc2, movie_rating r1, movie_rating r2, movie_link ml, title t1, title t2,
     country cy
WHERE cy.code = 'us' AND lt.id = ml.link_type_id AND t1.id = ml.movie_id
  AND t2.id = ml.linked_movie_id AND r1.movie_id = t1.id AND r2.movie_id = t2.id
  AND kt1.id = t1.kind_id AND kt2.id = t2.kind_id AND mc1.movie_id = t1.id
  AND mc2.movie_id = t2.id AND c1.id = mc1.company_id AND c2.id = mc2.company_id
  AND c1.country_id = cy.id AND t2.production_year BETWEEN 1990 AND 2015
  AND {1} AND {2} AND {3};

-- query 27
-- variant a: cct.kind = 'cast'; k.keyword IN ('murder', 'blood', 'fight', 'police'); n.gender = 'm'
-- variant b: cct.kind = 'crew'; k.keyword LIKE 'alien%'; n.gender = 'f'
SELECT count(*), min(mi.info), min(mr.votes), min(n.name), min(t.title)
FROM complete_cast cc, completion_type cct, completion_type ccs, cast_info ci, company cn,
     info_type it, keyword k, movie_company mc, movie_info mi, movie_rating mr, movie_keyword mk,
     person n, role_type rt, title t
WHERE ccs.kind = 'complete+verified' AND it.info = 'genres' AND rt.role = 'writer'
  AND mi.info IN ('Horror', 'Thriller', 'Crime', 'Sci-Fi') AND t.id = mi.movie_id
  AND t.id = mr.movie_id AND t.id = ci.movie_id AND t.id = mk.movie_id AND t.id = cc.movie_id
  AND t.id = mc.movie_id AND ci.movie_id = mi.movie_id AND ci.movie_id = mk.movie_id
  AND n.id = ci.person_id AND rt.id = ci.role_id AND it.id = mi.info_type_id
  AND k.id = mk.keyword_id AND cn.id = mc.company_id AND cct.id = cc.subject_id
  AND ccs.id = cc.status_id AND {1} AND {2} AND {3};

-- query 28, ordered by 2 1
-- variant a: t.production_year BETWEEN 1990 AND 2000; mi.info = 'Comedy'
-- variant b: t.production_year < 1950; mi.info IN ('Drama', 'Western')
SELECT cy.name, count(*), avg(mr.rating)
FROM country cy, company cn, movie_company mc, title t, movie_info mi, movie_rating mr
WHERE cn.country_id = cy.id AND mc.company_id = cn.id AND mc.movie_id = t.id
  AND mi.movie_id = t.id AND mr.movie_id = t.id AND {1} AND {2}
GROUP BY cy.name
ORDER BY count(*) DESC, cy.name;

-- query 29, ordered by 3 1
-- variant a: p.birth_country_id = 1; kt.kind = 'movie'
-- variant b: p.birth_country_id = 12; kt.kind = 'episode'
SELECT p.id, p.name, count(DISTINCT t.id) AS films
FROM person p, cast_info ci, title t, kind_type kt
WHERE ci.person_id = p.id AND ci.movie_id = t.id AND t.kind_id = kt.id AND {1} AND {2}
GROUP BY p.id, p.name
ORDER BY films DESC, p.id
LIMIT 20;

-- query 30
-- variant a: t.production_year > 2000; mr.votes > 1000
-- variant b: t.production_year < 1960; mr.votes > 10
SELECT count(*), min(t.title)
FROM title t, movie_rating mr
WHERE mr.movie_id = t.id AND {1} AND {2}
  AND EXISTS (
    SELECT 1 FROM movie_keyword mk, keyword k
    WHERE mk.movie_id = t.id AND mk.keyword_id = k.id AND k.keyword = 'sequel')
  AND NOT EXISTS (
    SELECT 1 FROM cast_info ci, role_type rt
    WHERE ci.movie_id = t.id AND ci.role_id = rt.id AND rt.role = 'writer');
